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
  timeout = "1s" # on a busy machine a script may have to wait
  run     = <<-JS
    (event, ctx) => {
      const alive = ctx.graph.creatures({ species: event.species });
      if (alive.length >= 8) return deny(`${alive.length} creatures of the species ${event.species} are alive`);
    }
  JS
}
