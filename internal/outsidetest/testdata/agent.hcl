variable "url" { type = string }
variable "config" { type = string }
variable "budget" { type = number }

channel "questions" {}
channel "answers" {}

llm "main" {
  endpoint            = var.url
  models              = ["small"]
  max_tokens          = 100
  tokens_per_creature = var.budget
  backoff             = "10ms"
}

creature "agent" {
  module     = "builtin:agent"
  privileged = true
  listen     = [channel.questions]
  send       = [channel.answers]
  config     = merge({ task = "You answer.", llm = "main", answer = ["answers"] }, jsondecode(var.config))
  grants { llm = ["main"] }
}
