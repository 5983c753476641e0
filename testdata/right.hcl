terrarium { name = "right" }

channel "letters" {}

creature "chief" { module = "builtin:tally" }

creature "clerk" {
  module = "builtin:relay"
  send   = [channel.letters]
}

root = creature.chief
