variable "url" {
  type = string
}

channel "tasks" {}
channel "answers" {}

http "server" {
  allow       = [var.url]
  methods     = ["POST"]
  backoff     = "10ms"
  backoff_max = "100ms"
  retries     = 50
}

creature "courier" {
  module = "courier.wasm"
  listen = [channel.tasks]
  send   = [channel.answers]
  config = { url = var.url }
  limits {
    requests = 65536
  }
  grants {
    http = ["server"]
  }
}
creature "ear" {
  module = "builtin:tally"
  listen = [channel.answers]
}
