package alerts

import (
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// worsening are the checks whose warning means that something deteriorates. The others
// describe how a machine is built, which needs no repeated alert.
var worsening = []api.HardwareCheckID{api.HardwareDisks, api.HardwareMirror, api.HardwareBootLoader, api.HardwareMemory, api.HardwarePathMTU}

// hardware adds alerts for hardware of the node that has failed, or is about to.
func (l *list) hardware(n api.Node, what about) {
	var failed, warned []string
	var failedIDs, warnedIDs []string
	hint := ""
	for _, c := range n.Status.Hardware {
		switch {
		case c.State == api.HardwareFailed:
			if len(failed) == 0 {
				hint = c.Advice
			}
			failed, failedIDs = append(failed, string(c.ID)+" ("+c.Found+")"), append(failedIDs, string(c.ID))
		case c.State == api.HardwareWarning && slices.Contains(worsening, c.ID):
			if hint == "" {
				hint = c.Advice
			}
			warned, warnedIDs = append(warned, string(c.ID)+" ("+c.Found+")"), append(warnedIDs, string(c.ID))
		}
	}
	advice := hint
	hint = strings.TrimSuffix(hint, ".") + "; details: basalt doctor hardware --all"
	switch {
	case len(failed) > 0:
		l.critical(api.AlertNodeHardware, what, hardwareSince(n), says("hardware of node "+n.Meta.Name+" has failed").because(strings.Join(failed, ", ")).with(api.AlertParams{Names: failedIDs, Advice: advice}), hint)
	case len(warned) > 0:
		l.warning(api.AlertNodeHardware, what, nil, says("hardware of node "+n.Meta.Name+" needs attention").because(strings.Join(warned, ", ")).with(api.AlertParams{Variant: api.AlertHardwareWorse, Names: warnedIDs, Advice: advice}), hint)
	}
}

// hardwareSince returns since when a hardware check of the node has failed, or nil if
// that is unknown.
func hardwareSince(n api.Node) *time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == api.ConditionHardware && !c.Status {
			return &c.Since
		}
	}
	return nil
}
