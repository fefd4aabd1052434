package alerts

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	pending = 10 * time.Minute // how long an instance may be pending
	tried   = 10 * time.Minute // how long an action may be retried with the same error
)

// trying are the phases in which a node acts, and retries what has failed.
var trying = []api.InstancePhase{api.InstanceCreating, api.InstanceStarting, api.InstanceStopping, api.InstanceDeleting}

// work adds alerts for the users' resources.
func (l *list) work(s State) {
	for _, i := range s.Images {
		if i.Status.Phase == api.ImageFailed {
			l.warning(api.AlertImageFailed, about{api.KindImage, i.Meta}, &i.Meta.UpdatedAt, says("image "+i.Meta.Name+" could not be imported").because(i.Status.LastError).of(i.Status.Cause), "delete it and import it again")
		}
	}
	for _, i := range s.Instances {
		what := about{api.KindInstance, i.Meta}
		switch phase := api.InstancePhaseOf(i); {
		case phase == api.InstanceFailed:
			l.warning(api.AlertInstanceFailed, what, &i.Meta.UpdatedAt, says("instance "+i.Meta.Name+" has failed").because(i.Status.LastError).of(i.Status.Cause), "check its console, then start it again: basalt instance start "+i.Meta.Name)
		case phase == api.InstancePending && i.Spec.Power != api.PowerStopped && l.now.Sub(i.Meta.UpdatedAt) > pending:
			l.warning(api.AlertInstancePending, what, &i.Meta.UpdatedAt, waits(i), "add capacity, or resize the instance")
		case i.Status.LastError != "" && slices.Contains(trying, phase) && l.now.Sub(i.Meta.UpdatedAt) > tried:
			l.warning(api.AlertInstanceTried, what, &i.Meta.UpdatedAt, says("instance "+i.Meta.Name+" keeps failing").because(i.Status.LastError).of(i.Status.Cause),
				"check its history, and journalctl -u basaltd on its node")
		}
	}
}

// networks adds alerts for networks that could not be created.
// waits returns the message about an instance that is pending, with the first reason there is.
func waits(i api.Instance) message {
	m, a := says("instance "+i.Meta.Name+" is pending"), i.Assignment
	switch {
	case a.Hold != "":
		return m.because(a.Hold).of(api.Cause{Code: api.CauseSuspended, Plain: true})
	case a.Reason != "":
		return m.because(a.Reason).of(a.Cause)
	case i.Status.Step != "":
		return m.because(i.Status.Step).of(i.Status.StepCause)
	}
	return m.because("no node has started it")
}

// disconnected returns the message about a router that has failed.
func disconnected(r api.Router) message {
	m := says("router " + r.Meta.Name + " has no external connectivity")
	if r.Status.LastError != "" {
		return m.because(r.Status.LastError).of(r.Status.Cause)
	}
	return m.because(r.Assignment.Reason).of(r.Assignment.Cause)
}

func (l *list) networks(s State) {
	for _, n := range s.External {
		if n.Status.Phase == api.NetworkFailed {
			l.critical(api.AlertNetworkFailed, about{api.KindExternalNetwork, n.Meta}, &n.Meta.UpdatedAt, says("external network "+n.Meta.Name+" does not work").because(n.Status.LastError).of(n.Status.Cause).with(api.AlertParams{Variant: api.AlertExternalNetwork}), "check its physical network, VLAN and addresses")
		}
	}
	for _, n := range s.Networks {
		if n.Status.Phase == api.NetworkFailed {
			l.warning(api.AlertNetworkFailed, about{api.KindNetwork, n.Meta}, &n.Meta.UpdatedAt, says("network "+n.Meta.Name+" does not work").because(n.Status.LastError).of(n.Status.Cause), "check journalctl -u basaltd on the leader")
		}
	}
	for _, r := range s.Routers {
		if r.Status.Phase == api.NetworkFailed {
			l.warning(api.AlertRouterFailed, about{api.KindRouter, r.Meta}, &r.Meta.UpdatedAt, disconnected(r), "check the external network, and that it has free addresses")
		}
	}
}
