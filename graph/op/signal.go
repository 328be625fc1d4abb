package op

func signalDefs() []Def { return nil }
