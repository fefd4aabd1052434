package agent

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestNextDisk(t *testing.T) {
	here := diskHolder{here: true}
	active := diskHolder{here: true, active: true}
	vol := func(wants, has api.InstanceID) api.Volume {
		return api.Volume{Spec: api.VolumeSpec{Instance: wants}, Status: api.VolumeStatus{Attached: has}}
	}
	back := func(v api.Volume) api.Volume {
		v.Spec.Rollback = &api.VolumeRollback{Snapshot: "snap-1", Count: v.Status.Rollbacks + 1}
		return v
	}
	root := func(v api.Volume) api.Volume { v.Spec.Root = true; return v }
	bounded := func(v api.Volume) api.Volume { v.Spec.Qos = &api.VolumeQoS{ReadIOPS: 1}; return v }
	for name, c := range map[string]struct {
		v    api.Volume
		s    diskSeen
		want diskDecision
		says bool
	}{
		"nobody's":                         {vol("", ""), diskSeen{}, diskDecision{}, false},
		"said first":                       {vol("a", ""), diskSeen{wanted: active}, diskDecision{step: diskReport, attached: "a"}, false},
		"wanted by what is elsewhere":      {vol("a", ""), diskSeen{}, diskDecision{}, false},
		"not said while it moves":          {vol("a", ""), diskSeen{wanted: diskHolder{here: true, moving: true}}, diskDecision{step: diskWait}, true},
		"attached live":                    {vol("a", "a"), diskSeen{holder: active, wanted: active}, diskDecision{step: diskAttach, attached: "a"}, false},
		"waits for the start":              {vol("a", "a"), diskSeen{holder: here, wanted: here}, diskDecision{attached: "a"}, false},
		"waits for a move":                 {vol("a", "a"), diskSeen{holder: diskHolder{here: true, active: true, moving: true}}, diskDecision{attached: "a"}, false},
		"open":                             {vol("a", "a"), diskSeen{holder: active, open: true}, diskDecision{attached: "a"}, false},
		"bounded":                          {bounded(vol("a", "a")), diskSeen{holder: active, open: true}, diskDecision{step: diskQoS, attached: "a"}, false},
		"unbounded":                        {vol("a", "a"), diskSeen{holder: active, open: true, qos: hypervisor.QoS{ReadIOPS: 1}}, diskDecision{step: diskQoS, attached: "a"}, false},
		"a root volume is bounded":         {root(bounded(vol("a", ""))), diskSeen{wanted: active, open: true}, diskDecision{step: diskQoS}, false},
		"a root volume is never attached":  {root(vol("a", "")), diskSeen{wanted: active}, diskDecision{}, false},
		"detached":                         {vol("", "a"), diskSeen{holder: active, open: true}, diskDecision{step: diskDetach, attached: "a"}, false},
		"another's: detached first":        {vol("b", "a"), diskSeen{holder: active, wanted: active, open: true}, diskDecision{step: diskDetach, attached: "a"}, false},
		"detached from what is stopped":    {vol("", "a"), diskSeen{holder: here}, diskDecision{step: diskDetach, attached: "a"}, false},
		"detached from what is gone":       {vol("", "a"), diskSeen{holder: diskHolder{gone: true}}, diskDecision{step: diskDetach, attached: "a"}, false},
		"not from what is on another node": {vol("", "a"), diskSeen{}, diskDecision{step: diskWait, attached: "a"}, true},
		"not from what is moving":          {vol("", "a"), diskSeen{holder: diskHolder{here: true, moving: true}}, diskDecision{step: diskWait, attached: "a"}, true},
		"rolled back":                      {back(vol("", "")), diskSeen{}, diskDecision{step: diskRollback}, false},
		"rolled back before it is given":   {back(vol("a", "")), diskSeen{wanted: active}, diskDecision{step: diskRollback}, false},
		"rolled back before it is open":    {back(vol("a", "a")), diskSeen{holder: active}, diskDecision{step: diskRollback, attached: "a"}, false},
		"not while it is open":             {back(vol("a", "a")), diskSeen{holder: active, open: true}, diskDecision{step: diskWait, attached: "a"}, true},
		"a root volume while it is open":   {root(back(vol("a", ""))), diskSeen{wanted: active, open: true}, diskDecision{step: diskWait}, true},
		"a root volume of what is stopped": {root(back(vol("a", ""))), diskSeen{wanted: here}, diskDecision{step: diskRollback}, false},
	} {
		got := nextDisk(c.v, c.s)
		if (got.waits.Text != "") != c.says {
			t.Errorf("%s: reason = %+v, want one: %t", name, got.waits, c.says)
		}
		if got.waits = (api.Reason{}); got != c.want {
			t.Errorf("%s: decision = %+v, want %+v", name, got, c.want)
		}
	}
}
