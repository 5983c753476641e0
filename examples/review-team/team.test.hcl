test "two reviewers agree and disagree" {
  send {
    channel = channel.lines
    lines   = ["water the ferns in the hall", "feed the newts", "sweep"]
  }
  assert {
    condition     = [for m in result.channel.report : [m.json.task, m.json.approved, m.json.refused]] == [[1, 2, 0], [2, 1, 1], [3, 0, 2]]
    error_message = "The verdicts are ${jsonencode(result.channel.report[*].json)}."
  }
  assert { condition = length(result.dead_letters) == 0 }
}

test "addresses are redacted" {
  variables = { reviewers = { eve = { strictness = 1 } } }
  send {
    channel = channel.lines
    payload = "write to eve@example.org about the moss"
  }
  assert {
    condition     = result.channel.reviews[0].json.text == "write to <address> about the moss"
    error_message = "The review says ${result.channel.reviews[0].payload}."
  }
  assert { condition = result.channel.report[0].json.approved == 1 }
}

test "long tasks are denied" {
  send {
    channel = channel.lines
    payload = join(" ", [for n in range(60) : "word"])
  }
  assert { condition = length(result.channel.tasks) == 0 }
  assert { condition = result.denials[*].policy == ["size"] }
}
