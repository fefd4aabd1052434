package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
)

// detail is what `get` prints below its row: a heading and a text per line.
type detail [][2]string

func (d *detail) add(heading, text string) {
	if text != "" {
		*d = append(*d, [2]string{heading, text})
	}
}

// conditions adds each condition, with its reason.
func (d *detail) conditions(now time.Time, all []api.Condition) {
	for _, c := range all {
		text := "no"
		if c.Status {
			text = "yes"
		}
		if why := cmp.Or(c.Message, c.Reason); why != "" {
			text += ": " + why
		}
		if !c.Since.IsZero() {
			text += " (for " + formatAge(now, c.Since) + ")"
		}
		d.add(c.Type, text)
	}
}

// String aligns the texts and replaces their control characters.
func (d detail) String() string {
	width := 0
	for _, line := range d {
		width = max(width, utf8.RuneCountInString(printable(line[0])))
	}
	var b strings.Builder
	for _, line := range d {
		heading := printable(line[0])
		fmt.Fprintf(&b, "%s:%s %s\n", heading, strings.Repeat(" ", width-utf8.RuneCountInString(heading)), printable(line[1]))
	}
	return b.String()
}

// nodeSilence is how long a node may not have reported before it counts as NotReady; the
// scheduler then places nothing new on it. Idle nodes report every minute.
const nodeSilence = 2 * time.Minute

// readiness returns Ready, or NotReady and the reason. The conditions of nodes and GPUs are
// true when all is well.
func readiness(now, seen time.Time, conditions []api.Condition) (ready, why string) {
	if seen.IsZero() {
		return "Unknown", ""
	}
	if d := now.Sub(seen); d > nodeSilence {
		return "NotReady", "no report for " + formatAge(now, seen)
	}
	for _, c := range conditions {
		if !c.Status && c.Type == api.ConditionHardware { // the node works nonetheless
			why = c.Type + ": " + c.Message
			continue
		}
		if !c.Status {
			return "NotReady", c.Type + ": " + cmp.Or(c.Message, c.Reason, "not ready")
		}
	}
	return "Ready", why
}

func instanceDetail(a *App) func(api.Instance) detail {
	return func(i api.Instance) detail {
		st := i.Status
		var d detail
		if i.Assignment.Node == "" {
			d.add("Not placed", i.Assignment.Reason)
		} else if i.Queue != nil {
			d.add("Not resized", i.Assignment.Reason)
		}
		if i.Queue != nil {
			d.add("Queue", queueNote(*i.Queue, a.Now()))
		}
		if u := i.Spec.QueueUntil; u != nil && i.Assignment.Node == "" {
			d.add("Waits until", formatTime(*u))
		}
		d.add("Dedicated CPUs", dedicatedCPUs(i.Assignment.Cells))
		a.addressesOf(&d, i)
		d.add("Doing", st.Step)
		d.add("Last error", st.LastError)
		d.conditions(a.Now(), st.Conditions)
		if st.StartedAt != nil {
			d.add("Started", formatTime(*st.StartedAt))
		}
		d.add("Guest tools", st.GuestTools)
		d.add("Flavor", a.named(string(i.Spec.Flavor)))
		d.add("Image", a.named(string(i.Spec.Image)))
		d.add("CD drives", a.media(i.Spec.Drives()))
		if i.Spec.Rescue != "" {
			d.add("Rescue", "each start is from "+a.named(string(i.Spec.Rescue))+"; to end it: basalt instance unrescue "+i.Meta.Name)
		}
		if i.Spec.Vgpu != nil {
			d.add("GPU", cmp.Or(a.named(string(i.Assignment.Gpu)), "none yet")+", pool "+i.Spec.Vgpu.Pool)
		}
		d.add("Root volume", a.named(string(i.Assignment.RootVolume)))
		if i.Meta.DeletedAt == nil && st.Phase == api.InstanceRunning {
			d.add("Console", "basalt instance console "+i.Meta.Name+"   (Ctrl-] disconnects)")
			if st.GuestTools != "" {
				d.add("Run inside", "basalt instance exec "+i.Meta.Name+" -- PROGRAM")
			}
		} else if st.LastError != "" {
			d.add("Serial log", "basalt instance log "+i.Meta.Name)
		}
		return d
	}
}

// media returns the names of the media in CD drives.
func (a *App) media(ids []api.ImageID) string {
	var names []string
	for _, id := range ids {
		names = append(names, cmp.Or(a.named(string(id)), "empty"))
	}
	return strings.Join(names, ", ")
}
