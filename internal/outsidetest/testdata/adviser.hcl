variable "url" { type = string }

variable "key" {
  type      = string
  sensitive = true
}

channel "questions" {}
channel "answers" {}

llm "main" {
  endpoint            = var.url
  models              = ["small"]
  key                 = var.key
  prices              = { small = "1 2" }
  max_tokens          = 100
  tokens_per_creature = 400
  money_per_graph     = "1"
  backoff             = "10ms"
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

policy "capability" "manners" {
  mode = "mutate"
  run  = <<-JS
    (event) => {
      const said = event.request.messages[0].content;
      if (said.includes("secret")) return deny("that is private");
      return patch({ request: { messages: [{ role: "system", content: "be brief" }, ...event.request.messages] } });
    }
  JS
}
