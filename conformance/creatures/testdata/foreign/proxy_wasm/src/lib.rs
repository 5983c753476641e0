use proxy_wasm::traits::*;
use proxy_wasm::types::*;

proxy_wasm::main! {{
    proxy_wasm::set_http_context(|_, _| -> Box<dyn HttpContext> { Box::new(Greeter) });
}}

struct Greeter;

impl Context for Greeter {}

impl HttpContext for Greeter {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        self.send_http_response(200, vec![], Some(b"Hello!"));
        Action::Pause
    }
}
