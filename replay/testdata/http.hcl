terrarium { name = "http" }

variable "url" { type = string }
variable "token" {
  type      = string
  sensitive = true
}

channel "tasks" {}
channel "strays" {}
channel "answers" {}

http "server" {
  allow      = ["${var.url}/**"]
  methods    = ["POST"]
  headers    = { authorization = "Bearer ${var.token}" }
  backoff    = "1ms"
  retries    = 1
  on_failure = "dead_letter"
}

creature "courier" {
  module = "../../internal/outsidetest/testdata/courier.wasm"
  listen = [channel.tasks]
  send   = [channel.answers]
  config = { url = "${var.url}/hook" }
  grants { http = ["server"] }
}

creature "stray" {
  module = "../../internal/outsidetest/testdata/courier.wasm"
  listen = [channel.strays]
  send   = [channel.answers]
  config = { url = "http://127.0.0.2:9/elsewhere" }
  grants { http = ["server"] }
}

creature "ear" {
  module = "builtin:tally"
  listen = [channel.answers]
}

policy "capability" "strict" {
  mode = "mutate"
  run  = <<-JS
    (event) => {
      switch (event.request.body.split(" ")[0]) {
        case "denied": return deny("no");
        case "changed": return patch({ request: { body: "something else" } });
        case "astray": return patch({ request: { url: "https://example.com/" } });
        case "careful": return ask("is it right?");
      }
    }
  JS
}
