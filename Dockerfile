# One image for every service of docker-compose.yml: huai, git and a stock rsync.
# Needs no BuildKit. Standard build arguments pass a proxy or an own package index through. Where
# the build reaches no index, fill build/wheels with `pip download` and pass PIP_NO_INDEX=1 and
# PIP_FIND_LINKS=build/wheels; build/crates, if `cargo vendor` has filled it, takes the place of the
# registry of crates. Whatever the source, hashes decide (requirements/*.lock, native/Cargo.lock).
# About 440 MB: 75 of the base, 256 of git (with Perl), Python and rsync, the rest huai.
# The base is named by a tag, which follows Debian's security updates: `docker compose build --pull`.
# For builds that are the same every time give a digest: BASE_IMAGE=debian@sha256:…, which
# `docker image inspect --format '{{.RepoDigests}}' debian:12-slim` tells of the one that is here.
ARG BASE_IMAGE=debian:12-slim

# Few steps: each is a layer, and many storage drivers walk or copy the whole tree for one.
FROM ${BASE_IMAGE} AS programs
COPY requirements/debian.txt /usr/share/huai/
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    $(awk '$2 == "run" {print $1}' /usr/share/huai/debian.txt) \
 && rm -rf /var/lib/apt/lists/*

# The compilers stay behind in this stage. Debian 12 has the newer Rust under names of its own;
# from Debian 13 on it is "cargo rustc". Cargo's settings make a build that is not for use quick.
FROM programs AS build
ARG RUST_PACKAGES="cargo-web rustc-web" \
    PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_NO_INDEX PIP_FIND_LINKS \
    CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_OPT_LEVEL CARGO_PROFILE_RELEASE_CODEGEN_UNITS
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    $(awk '$2 == "build" {print $1}' /usr/share/huai/debian.txt) ${RUST_PACKAGES} \
 && rm -rf /var/lib/apt/lists/*
COPY . /build/
# What builds works from an environment of its own, so that the image holds none of it. setup.py
# lets the preload library be missing, for packagers without a C compiler; here is one.
RUN cd /build \
 && python3 -m venv tools \
 && python3 -m venv --without-pip /opt/huai \
 && sed -nE '/^(semantic-version|setuptools(-rust)?)==/,/[^\\]$/p' requirements/dev.lock >build.lock \
 && tools/bin/pip install --no-cache-dir --only-binary=:all: --require-hashes -r build.lock \
 && tools/bin/pip --python /opt/huai/bin/python install --no-cache-dir --only-binary=:all: \
    --require-hashes -r requirements/server.lock \
 && if [ -d build/crates/pyo3 ]; then \
      mkdir .cargo \
      && printf '[source.crates-io]\nreplace-with = "copy"\n[source.copy]\ndirectory = "build/crates"\n' \
        >.cargo/config.toml; \
    fi \
 && tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir made . \
 && tools/bin/pip --python /opt/huai/bin/python install --no-cache-dir --no-deps made/*.whl \
 && tools/bin/python -c "import setuptools, distutils.core as core; \
    print(*(one.name for one in core.run_setup('setup.py', stop_after='init').ext_modules), sep='\n')" \
  | tr . / | while read -r library; do \
      ls /opt/huai/lib/python3*/site-packages/"$library".*.so || exit 1; \
    done \
 && install hooks/post-sync hooks/compose/repeat hooks/compose/listed hooks/compose/update-sample \
    /opt/huai/bin/ \
 && install -D --mode=644 --target-directory=/opt/huai/share/compose hooks/compose/*.toml

FROM programs
COPY --from=build /opt/huai /opt/huai
# Docker fills a new named volume with what the image has at its place: that is how the volumes get
# their owner and their configuration.
RUN groupadd --gid 8440 huai \
 && useradd --uid 8440 --gid 8440 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin huai \
 && install -d -o huai -g huai /srv/mirror /srv/mirror/sample /srv/copy /srv/copy/sample \
    /srv/plain /srv/plain/sample /var/lib/huai /var/lib/huai-client /run/huai /run/huai/fallback \
 && cd /opt/huai/share/compose \
 && install -o huai -g huai --mode=644 --target-directory=/var/lib/huai server.toml \
 && install -o huai -g huai --mode=644 --target-directory=/var/lib/huai-client client.toml
ENV PATH=/opt/huai/bin:/usr/local/bin:/usr/bin:/bin \
    LC_ALL=C.UTF-8 \
    HUAI_ROOT=/var/lib/huai \
    HUAI_CLIENT_ROOT=/var/lib/huai-client
USER 8440:8440
CMD ["huai-server", "--help"]
