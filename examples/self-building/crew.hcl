# tasks ─► foreman ─► clerk-1 … clerk-n ─ ─► ledger ─► results
#             └─► problems

terrarium { required_version = ">= 0.1" }

variable "clerks" {
  description = "how many workers there may be at a time"
  type        = number
  default     = 4
}

variable "linger" {
  description = "how many milliseconds workers are kept when no task is left"
  type        = number
  default     = 0
}

channel "tasks"    { description = "the tasks, one per line" }
channel "dismiss"  { description = "a message here removes the workers as soon as they are free" }
channel "crew"     { description = "connects the workers to the foreman" }
channel "results"  { description = "the result of each task" }
channel "problems" { description = "tasks that could not be done, and the reasons" }

creature "foreman" {
  module = "builtin:foreman"
  listen = [channel.tasks, channel.dismiss]
  send   = [channel.crew, channel.problems]
  config = {
    species    = "clerk"
    channel    = "crew"
    answers_to = "ledger"
    per_worker = 4
    linger_ms  = var.linger
  }
}

creature "ledger" {
  module = "builtin:split"
  send   = [channel.results]
  config = { to = ["results"] } # only there, not to the root
}

root = creature.foreman

species "clerk" {
  module    = "builtin:clerk"
  spawnable = var.clerks
  limits { deadline = "30s" }
  restart { attempts = 1 } # the foreman gives the task to another clerk
}
