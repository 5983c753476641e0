variable "reviewers" {
  description = "reviewers, and the number of words that each expects of a task"
  type        = map(object({ strictness = optional(number, 3) }))
  default     = { ann = {}, bob = { strictness = 5 } }
  validation {
    condition     = length(var.reviewers) >= 1 && length(var.reviewers) <= 16
    error_message = "From one to sixteen reviewers."
  }
}

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

creature "reviewer" {
  for_each = var.reviewers
  species  = species.reviewer
  listen   = [channel.tasks]
  send     = [channel.reviews]
  config   = { strictness = each.value.strictness }
}
