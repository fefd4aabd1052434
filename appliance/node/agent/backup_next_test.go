package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/backup"
)

func TestNextBackup(t *testing.T) {
	at := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	gone, busy := api.Errorf(api.CodeUnavailable, "gone"), api.Errorf(api.CodeInUse, "busy")
	can := backupSeen{volume: true, able: true}
	with := func(f func(*backupSeen)) backupSeen { s := can; f(&s); return s }
	deleted := api.Meta{DeletedAt: &at}
	began := api.BackupStatus{Phase: api.BackupRunning, StartedAt: &at}
	for name, c := range map[string]struct {
		meta   api.Meta
		status api.BackupStatus
		seen   backupSeen
		step   backupStep
		phase  api.BackupPhase
		says   string
	}{
		"new":                      {seen: can, step: backupRun},
		"no volume yet":            {seen: with(func(s *backupSeen) { s.volume = false }), step: backupWait, phase: api.BackupPending, says: "volume"},
		"no snapshots":             {seen: with(func(s *backupSeen) { s.able = false }), step: backupNone, phase: api.BackupFailed, says: "snapshots"},
		"target not ready":         {seen: with(func(s *backupSeen) { s.target = plainly(api.CauseTargetUnavailable, "waits for it") }), step: backupWait, phase: api.BackupPending, says: "waits for it"},
		"volume gone":              {seen: with(func(s *backupSeen) { s.gone = true }), step: backupClean, phase: api.BackupFailed, says: "does not exist"},
		"after a crash":            {status: began, seen: can, step: backupRun, phase: api.BackupRunning},
		"copying":                  {status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: runBackup, running: true} }), step: backupWait, phase: api.BackupRunning},
		"copying what is deleted":  {status: began, seen: with(func(s *backupSeen) { s.copy.running, s.gone = true, true }), step: backupCancel, phase: api.BackupRunning},
		"copied":                   {status: began, seen: with(func(s *backupSeen) { s.copy.ended = true }), step: backupClean, phase: api.BackupSucceeded},
		"failed":                   {status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{ended: true, err: errors.Join(gone, errors.New("password=x"))} }), step: backupClean, phase: api.BackupFailed, says: "gone"},
		"failed for nobody knows":  {status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{ended: true, err: errors.New("/secret/path")} }), step: backupClean, phase: api.BackupFailed, says: "log"},
		"busy":                     {status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{ended: true, err: busy} }), step: backupDrop, phase: api.BackupRunning, says: "busy"},
		"later":                    {status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{ended: true, err: errLater} }), step: backupDrop, phase: api.BackupRunning},
		"over":                     {status: api.BackupStatus{Phase: api.BackupFailed}, seen: can, step: backupNone, phase: api.BackupFailed},
		"deleted, never began":     {meta: deleted, seen: can, step: backupForget, phase: api.BackupDeleting},
		"deleted while it copies":  {meta: deleted, status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: runBackup, running: true} }), step: backupCancel, phase: api.BackupDeleting},
		"deleted when it has":      {meta: deleted, status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: runBackup, ended: true} }), step: backupDelete, phase: api.BackupDeleting},
		"being deleted":            {meta: deleted, status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: deleteBackup, running: true} }), step: backupWait, phase: api.BackupDeleting},
		"gone from the target":     {meta: deleted, status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: deleteBackup, ended: true} }), step: backupForget, phase: api.BackupDeleting},
		"cannot be deleted":        {meta: deleted, status: began, seen: with(func(s *backupSeen) { s.copy = copySeen{what: deleteBackup, ended: true, err: gone} }), step: backupDrop, phase: api.BackupDeleting, says: "gone"},
		"deleted, its volume gone": {meta: deleted, status: began, seen: backupSeen{gone: true}, step: backupDelete, phase: api.BackupDeleting},
	} {
		c.seen.now = at
		d := nextBackup(api.Backup{Meta: c.meta, Status: c.status}, c.seen)
		if d.step != c.step || d.status.Phase != c.phase || !strings.Contains(d.status.LastError, c.says) ||
			strings.Contains(d.status.LastError, "secret") || strings.Contains(d.status.LastError, "password") {
			t.Errorf("%s: step %q, status %+v; want step %q, phase %s, an error with %q and without secrets", name, d.step, d.status, c.step, c.phase, c.says)
		}
		if d.status.Phase.Ended() && c.status.Phase == api.BackupRunning && d.status.EndedAt == nil {
			t.Errorf("%s: status %+v has no endedAt, want one in phase %s", name, d.status, d.status.Phase)
		}
	}
}

func TestNextTarget(t *testing.T) {
	target := api.BackupTarget{Meta: api.Meta{Generation: 3}}
	target.Status = nextTarget(target, api.Errorf(api.CodeUnavailable, "no route"))
	if st := target.Status; st.Phase != api.TargetFailed || st.LastError != "no route" || prepared(target) {
		t.Errorf("status of a new target that failed = %+v, want phase %s, error %q and not prepared", st, api.TargetFailed, "no route")
	}
	target.Status = nextTarget(target, nil)
	if st := target.Status; st != (api.BackupTargetStatus{Phase: api.TargetReady, ObservedGeneration: 3}) || !prepared(target) {
		t.Errorf("status of a target that answered = %+v, want ready and prepared at generation 3", st)
	}
	// A target that becomes unreachable stays prepared: its repository was created.
	if target.Status = nextTarget(target, errors.New("x")); target.Status.Phase != api.TargetFailed || !prepared(target) {
		t.Errorf("status of a prepared target that failed = %+v, want phase %s and still prepared", target.Status, api.TargetFailed)
	}
}

// TestCopies checks that copies observe their limit, keep their results until
// discarded, and end when cancelled.
func TestCopies(t *testing.T) {
	triggered := make(chan string, 10)
	co := &core{o: Options{Go: func(f func()) { go f() }}, trigger: func(k string) { triggered <- k }}
	c := newCopies(co, 1)
	begin := func(key string, f func(ctx context.Context) error) bool {
		return c.begin(t.Context(), key, "x", func(ctx context.Context, p func(backup.Progress)) (backup.Result, error) {
			p(backup.Progress{DoneBytes: 1, TotalBytes: 2})
			return backup.Result{TotalBytes: 2}, f(ctx)
		})
	}
	hold := make(chan struct{})
	if !begin("a", func(context.Context) error { <-hold; return nil }) || begin("a", nil) || begin("b", nil) || !c.full() {
		t.Fatal("begin with a limit of one: want the first to start, a second for the same key and for another to be refused, and full() = true")
	}
	close(hold)
	if k := <-triggered; k != "a" {
		t.Errorf("triggered key = %q, want a", k)
	}
	if s := c.state("a"); !s.ended || s.running || s.result.TotalBytes != 2 || s.progress.DoneBytes != 1 || s.err != nil || c.full() {
		t.Errorf("state of the ended copy = %+v, want ended without error, 1 of 2 bytes done, result 2, and not full", s)
	}
	if begin("a", nil) {
		t.Error("begin of a key whose result was not discarded = true, want false")
	}
	c.discard("a")
	if !begin("b", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) {
		t.Fatal("begin of b after the only copy ended = false, want true")
	}
	if !c.cancel("b") {
		t.Error("cancel of the running copy = false, want true")
	}
	<-triggered
	if s := c.state("b"); s != (copySeen{}) || c.cancel("b") {
		t.Errorf("state of the cancelled copy = %+v, want none", s)
	}
	c.wait()
}
