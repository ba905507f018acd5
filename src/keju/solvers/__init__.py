"""How a request becomes a reply; a solver (`keju.engine.channel.Solver`) asks a channel."""
