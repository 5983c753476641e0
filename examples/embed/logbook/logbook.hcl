variable "file" { type = string }

channel "notes" {}
channel "done" {}

capability "logbook" "ship" {
  settings = { file = var.file, line = "100B" }
}

creature "clerk" {
  module = "builtin:js"
  listen = [channel.notes]
  send   = [channel.done]
  config = {
    script = <<-JS
      export default {
        message(turn) { turn.request("capability:logbook.ship", turn.text(), { deadlineMs: 0 }); },
        result(turn) { turn.send("done", turn.resultCode + " " + turn.text()); },
      };
    JS
  }
  grants { capabilities = ["logbook.ship"] }
}

policy "capability" "manners" {
  mode = "mutate"
  run  = <<-JS
    (event) => {
      if (event.request.text.includes("kraken")) return deny("there are no krakens");
      if (event.request.text.includes("bored")) return patch({ request: { text: "nothing to report" } });
    }
  JS
}
