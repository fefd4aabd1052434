package agent

// LeavingChanged has the agent look at once at what Options.Leaving reports: the node is
// reported, and every instance is decided on anew.
func (a *Agent) LeavingChanged() {
	a.reporter.soon()
	for _, k := range a.cache.instanceKeys() {
		a.kick(k)
	}
}
