package autodiff

func unaryRules() []Rule { return nil }
