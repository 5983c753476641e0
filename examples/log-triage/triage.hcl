# lines ─► spread ─► share[1…n] ─► triage[1…n] ─► alerts
#                              └─► count[1…n]  ─► counts

terrarium { required_version = ">= 0.1" }

variable "workers" {
  description = "how many workers share the log"
  type        = number
  default     = 4
  validation {
    condition     = var.workers >= 1 && var.workers <= 64 && floor(var.workers) == var.workers
    error_message = "From 1 to 64 workers."
  }
}

variable "alarming" {
  description = "pattern of the lines to report"
  type        = string
  default     = "^[^ ]+ [^ ]+ (install|upgrade|remove|purge|disappear|conffile) "
}

variable "every" {
  description = "how many lines of its share a worker counts before it reports"
  type        = number
  default     = 500
}

locals {
  workers = toset([for n in range(var.workers) : format("%02d", n + 1)])
}

channel "lines" { description = "the log, one line per message" }
channel "alerts" { description = "lines that match var.alarming" }
channel "counts" { description = "what each worker has counted" }
channel "ask" { description = "a message here asks every worker for its counts" }

channel "share" {
  for_each    = local.workers
  description = "the lines of worker ${each.key}"
}

creature "spread" {
  module = "builtin:split"
  listen = [channel.lines]
  send   = { for n in local.workers : n => channel.share[n] }
  config = { to = sort(local.workers) } # in turn
}

creature "triage" {
  for_each = local.workers
  module   = "builtin:gate"
  listen   = [channel.share[each.key]]
  send     = [channel.alerts]
  config   = { match = var.alarming }
}

creature "count" {
  for_each = local.workers
  module   = "builtin:tally"
  listen   = { lines = channel.share[each.key], report = channel.ask }
  send     = [channel.counts]
  config   = { key = "field:3", every = var.every } # counts by the action of dpkg
}
