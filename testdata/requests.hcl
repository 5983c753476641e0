variable "url" { type = string }
variable "token" {
  type      = string
  sensitive = true
  default   = "s3cr3t-s3cr3t"
}

channel "tasks" {}
channel "answers" {}

http "server" {
  allow   = ["${var.url}/hook", "${var.url}/hook/**"]
  methods = ["POST"]
  headers = { authorization = "Bearer ${var.token}" }
  retries = 0
}

creature "courier" {
  module = "../internal/outsidetest/testdata/courier.wasm"
  listen = [channel.tasks]
  send   = [channel.answers]
  config = { url = "${var.url}/hook" }
  grants { http = ["server"] }
}

policy "capability" "gatekeeper" {
  mode  = "mutate"
  match = event.capability == "http" && event.method == "POST"
  run   = <<-JS
    (event) => {
      switch (event.request.body.split(" ")[0]) {
        case "denied": return deny("no");
        case "changed": return patch({ request: { url: event.url + "/other", headers: { "x-checked": "yes" }, body: "altered" } });
        case "astray": return patch({ request: { url: "https://example.com/" } });
        case "careful": return ask("is it right?");
      }
    }
  JS
}
