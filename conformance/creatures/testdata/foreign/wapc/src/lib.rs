use wapc_guest as guest;

#[no_mangle]
pub extern "C" fn wapc_init() {
    guest::register_function("greet", |name: &[u8]| {
        let heard = guest::host_call("binding", "sample", "ping", name)?;
        Ok([b"Hello, ", heard.as_slice()].concat())
    });
}
