# lines ─► writer ─► tasks ─► reviewer[…] ─► reviews ─► writer ─► (wire) ─► lead ─► report

terrarium {
  name             = "review-team"
  required_version = ">= 0.1"
}

session {
  durability = "normal"
  merge      = "deny"
}

channel "lines" { description = "tasks, one a line" }
channel "tasks" { description = "the tasks, numbered" }
channel "reviews" { description = "verdicts back to the writer" }
channel "report" { description = "the results, from the lead" }

predicate "done" { run = "output.status === 'done'" }

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

# A root hears everything. The lead reports what the writer says is done.
creature "lead" {
  module = "builtin:gate"
  send   = [channel.report]
  config = { match = "\"status\":\"done\"" }
}

root = creature.lead
