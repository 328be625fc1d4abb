package autodiff

func controlRules() []Rule { return nil }
