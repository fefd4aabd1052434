package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestCauseText checks the sentences that tenants read, and that a text without a cause, as
// earlier versions stored them, is not shown.
func TestCauseText(t *testing.T) {
	for _, c := range []struct {
		cause        Cause
		beside, want string
	}{
		{Cause{}, "", ""},
		{Cause{}, "no node fits: n1: has no GPU in pool default", internalProblem},
		{Plain, "network web is not ready", "network web is not ready"},
		{Cause{Code: CauseNetworkNotReady, Name: "web", Plain: true}, "network web is not ready", "network web is not ready"},
		{Cause{Code: CauseImageNotReady, Name: "debian"}, "image debian is not ready: /srv is full", "its image is not ready"},
		{Cause{Code: "of-a-later-version"}, "n1 is lost", internalProblem},
		{Cause{Code: CauseNoRoom, Missing: MissingGPU, Model: "NVIDIA L4", Bytes: 24 << 30}, "n1: full", "no NVIDIA L4 with 24 GiB of free VRAM is available now"},
		{Cause{Code: CauseNoRoom, Missing: MissingGPU, Bytes: 8 << 30, Count: 50}, "n1: full", "no GPU with 8 GiB of free VRAM and 50 % of its time is available now"},
		{Cause{Code: CauseNoRoom, Missing: MissingCPUs, Count: 8}, "n1: full", "8 vCPUs are not free in one place now"},
		{Cause{Code: CauseNoRoom}, "n1: full", "there is no room for this size now"},
		{Cause{Code: CauseNoStorage, Bytes: 1 << 40}, "n1: full", "no storage has room for a volume of 1 TiB now"},
	} {
		if got := c.cause.Text(c.beside); got != c.want {
			t.Errorf("%+v beside %q = %q, want %q", c.cause, c.beside, got, c.want)
		}
	}
	for _, code := range []CauseCode{CauseRoomReserved, CauseNodeUnavailable, CauseDataLost, CauseDataElsewhere, CauseMoving, CauseNotPlaced, CauseImageNotReady} {
		if causeTexts[code] == "" {
			t.Errorf("cause %s has no sentence", code)
		}
	}
}

// TestReasonOf checks that only domain errors without details are for every reader.
func TestReasonOf(t *testing.T) {
	detailed := Errorf(CodeUnavailable, "the node is not reachable").Because(Cause{Code: CauseNodeUnavailable}, "node n1")
	for _, c := range []struct {
		err  error
		want Reason
	}{
		{errors.New("fork/exec /usr/bin/qemu-img: no such file"), Reason{Text: "failed"}},
		{fmt.Errorf("import: %w", Errorf(CodeInvalid, "the server answered 404").Because(Cause{Code: CauseSourceRefused, Count: 404}, "")),
			Reason{"the server answered 404", Cause{Code: CauseSourceRefused, Count: 404, Plain: true}}},
		{Errorf(CodeDiskFull, "the volume store is full"), Reason{"the volume store is full", Cause{Code: CauseStorageFull, Plain: true}}},
		{detailed, Reason{"the node is not reachable: node n1", Cause{Code: CauseNodeUnavailable}}},
	} {
		if got := ReasonOf(c.err, "failed"); got != c.want {
			t.Errorf("reason of %v = %+v, want %+v", c.err, got, c.want)
		}
	}
}

// TestErrorsHaveCauses checks that the reason for an error of each code has a cause.
func TestErrorsHaveCauses(t *testing.T) {
	for code := range statuses {
		if r := ReasonOf(Errorf(code, "it failed"), ""); r.Cause.Code == "" || !r.Cause.Plain {
			t.Errorf("cause of an error with code %s = %+v, want a code, beside a text for every reader", code, r.Cause)
		}
	}
}

// TestHistoryHasCauses checks that the history of an instance has the cause of the text that
// it has, and none in clusters whose nodes do not all know them.
func TestHistoryHasCauses(t *testing.T) {
	o := Object{Kind: KindInstance, Assignment: Encode(InstanceAssignment{Reason: "no node fits: n1: full", Cause: Cause{Code: CauseNoRoom}})}
	for _, causes := range []bool{true, false} {
		e := HistoryOf(nil, Event{Type: EventPut, Object: o}, "", time.Time{}, causes)
		if e == nil || (e.Cause.Code == CauseNoRoom) != causes || e.Message == "" {
			t.Errorf("history with causes %t = %+v, want the message, and its cause if there are causes", causes, e)
		}
	}
}

// TestEventsTellTheCause checks that events, which tenants receive, have no text for
// operators.
func TestEventsTellTheCause(t *testing.T) {
	o := Object{Kind: KindVolume, Meta: Meta{ID: "vol-1"}, Status: Encode(VolumeStatus{Phase: VolumeFailed, LastError: "n1: disk sdb failed"})}
	before := o
	before.Status = nil
	for _, e := range EventsOf(&before, Event{Type: EventPut, Object: o, Revision: 2}, nil, time.Time{}, true) {
		var data EventObject
		err := json.Unmarshal(e.Data, &data)
		if err != nil || data.Error != internalProblem {
			t.Errorf("error of the event = %q, %v; want %q", data.Error, err, internalProblem)
		}
	}
}
