# questions ─► lead ─► answers
#               ├──► specialists, which it spawns when a question needs one
#               ◄─ ─ their outputs

terrarium { required_version = ">= 0.1" }

variable "endpoint" {
  description = "the base URL of a server for models; without it, the rules in model.json answer"
  type        = string
  default     = ""
}

variable "key" {
  description = "the key for the server, if it needs one"
  type        = string
  default     = null
  sensitive   = true
}

variable "model" {
  description = "the model to use"
  type        = string
  default     = "scripted"
}

channel "questions" { description = "one question per message" }
channel "answers"   { description = "the answers to the questions" }

llm "main" {
  endpoint         = var.endpoint == "" ? "http://127.0.0.1/v1" : var.endpoint
  scripted         = var.endpoint == "" ? file("model.json") : ""
  models           = [var.model]
  key              = var.key
  tokens_per_graph = 1000000
}

creature "lead" {
  module = "builtin:agent"
  listen = [channel.questions]
  send   = [channel.answers]
  config = {
    llm    = "main"
    answer = ["answers"]
    task   = <<-TEXT
      You lead a team that answers questions. You do not answer them yourself.
      For each question, spawn a specialist with group_add_node: the species is "specialist", and
      its config has a task that says what it is an expert for, such as {"task": "You are a botanist. Answer in one sentence."}.
      Wire its output to yourself with group_wire, send it the question with group_send, and then call wait.
      When its output reaches you, remove the specialist with group_remove_node, and then answer the question in your own words.
    TEXT
  }
  grants { llm = ["main"] }
}

root = creature.lead

stop_when "endless" {
  description = "pauses the agents if they do not stop by themselves"
  turns       = 2000
}

species "specialist" {
  module    = "builtin:agent"
  spawnable = 3
  config = {
    llm   = "main"
    task  = "You are a specialist. Answer in one sentence."
    tools = []
  }
  grants { llm = ["main"] }
}
