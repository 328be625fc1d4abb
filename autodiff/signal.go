package autodiff

func signalRules() []Rule { return nil }
