package agent

// LeavingChanged has the agent check at once what Options.Leaving reports: the node
// is reported, and every instance is reconciled.
func (a *Agent) LeavingChanged() {
	a.reporter.soon()
	for _, k := range a.cache.instanceKeys() {
		a.trigger(k)
	}
}
