variable "url" { type = string }

variable "enough" { type = string }

variable "key" {
  type      = string
  sensitive = true
}

channel "questions" {}
channel "answers" {}

llm "main" {
  endpoint        = var.url
  models          = ["small"]
  key             = var.key
  prices          = { small = "1 2" }
  max_tokens      = 100
  money_per_graph = "1"
  backoff         = "10ms"
}

creature "adviser" {
  module = "builtin:js"
  listen = [channel.questions]
  send   = [channel.answers]
  config = {
    script = <<-JS
      export default {
        message(turn) {
          turn.request("capability:llm.main", { messages: [{ role: "user", content: turn.text() }] }, { deadlineMs: 0 });
        },
        result(turn) {
          turn.send("answers", turn.resultCode + ": " + (turn.resultCode === "ok" ? turn.json().message.content : turn.text()));
        },
      };
    JS
  }
  grants { llm = ["main"] }
}

stop_when "spent" {
  money = var.enough
}
