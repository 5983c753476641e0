# lines ─► writer ─► tasks ─► reviewer[…] ─► reviews ─► writer ─► (wire) ─► lead ─► report

terrarium {
  name             = "review-team"
  required_version = ">= 0.1"
}

session {
  durability = "normal"
  merge      = "deny"
}

variable "reviewers" {
  description = "who judges, and how many words a task needs for each"
  type        = map(object({ strictness = optional(number, 3) }))
  default     = { ann = {}, bob = { strictness = 5 } }
  validation {
    condition     = length(var.reviewers) >= 1 && length(var.reviewers) <= 16
    error_message = "From one to sixteen reviewers."
  }
}

channel "lines" { description = "what is to be done, one task a line" }
channel "tasks" { description = "the tasks, numbered" }
channel "reviews" { description = "verdicts back to the writer" }
channel "report" { description = "what the lead has to say" }

predicate "done" { run = "output.status === 'done'" }

species "reviewer" {
  module = "${path.recipe}/reviewer/reviewer.wasm"
  limits {
    memory   = "16MiB"
    fuel     = 50e6
    deadline = "200ms"
  }
  restart {
    max     = 5
    within  = "1m"
    backoff = "100ms"
  }
  spawnable = 8
}

creature "writer" {
  module = "${path.recipe}/writer/writer.wasm"
  listen = [channel.lines, channel.reviews]
  send   = [channel.tasks]
  config = { reviewers = length(var.reviewers) }

  wire "digest" {
    to   = root
    when = predicate.done
  }
}

creature "reviewer" {
  for_each = var.reviewers
  species  = species.reviewer
  listen   = [channel.tasks]
  send     = [channel.reviews]
  config   = { strictness = each.value.strictness }
}

# Of all that a root hears, the lead reports what the writer says is done.
creature "lead" {
  module = "builtin:gate"
  send   = [channel.report]
  config = { match = "\"status\":\"done\"" }
}

root = creature.lead

policy "send" "size" {
  channel = channel.lines
  match   = event.size > 200
  run     = <<-JS
    (event) => deny(`a task has ${event.size} bytes; 200 are enough`)
  JS
}

policy "send" "redact" {
  channel = channel.reviews
  mode    = "mutate"
  file    = "policies/redact.js"
}
