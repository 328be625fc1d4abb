package autodiff

func lossRules() []Rule { return nil }
