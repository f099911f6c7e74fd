"""The modules that are served to plain rsync clients."""

from pathlib import Path

from huai_server.config.load import ServerConfig
from huai_server.config.tables import Module, ModuleFallback
from huai_server.fallback.trees import Trees


def test_a_private_module_without_limits_is_left_out(tmp_path: Path) -> None:
    real = ModuleFallback(kind="real")
    limited = ModuleFallback(kind="real", hosts_allow=("10.0.0.0/8",))
    modules = {
        "open": Module(path="/open", fallback=real),
        "closed": Module(path="/closed", fallback=real, access="private"),
        "limited": Module(path="/limited", fallback=limited, access="private"),
    }
    trees = Trees(tmp_path, ServerConfig(modules=modules))
    assert list(trees.served()) == ["open", "limited"]
