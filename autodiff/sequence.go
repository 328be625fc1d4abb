package autodiff

func sequenceRules() []Rule { return nil }
