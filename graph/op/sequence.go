package op

func sequenceDefs() []Def { return nil }
