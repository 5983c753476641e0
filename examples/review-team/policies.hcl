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

policy "spawn" "cage" {
  species = species.reviewer
  timeout = "1s" # a busy machine may not run a script for a while
  run     = <<-JS
    (event, ctx) => {
      const kin = ctx.graph.creatures({ species: event.species });
      if (kin.length >= 8) return deny(`${kin.length} creatures of the species ${event.species} are alive`);
    }
  JS
}
