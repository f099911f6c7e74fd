#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| huai_fuzz::run_target("bundle", data));
