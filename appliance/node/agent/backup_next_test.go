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
		"target not ready":         {seen: with(func(s *backupSeen) { s.target = "waits for it" }), step: backupWait, phase: api.BackupPending, says: "waits for it"},
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
			t.Errorf("%s: %q, %+v", name, d.step, d.status)
		}
		if d.status.Phase.Ended() && c.status.Phase == api.BackupRunning && d.status.EndedAt == nil {
			t.Errorf("%s: it has no end", name)
		}
	}
}

func TestNextTarget(t *testing.T) {
	target := api.BackupTarget{Meta: api.Meta{Generation: 3}}
	target.Status = nextTarget(target, api.Errorf(api.CodeUnavailable, "no route"))
	if st := target.Status; st.Phase != api.TargetFailed || st.LastError != "no route" || prepared(target) {
		t.Errorf("%+v", st)
	}
	target.Status = nextTarget(target, nil)
	if st := target.Status; st != (api.BackupTargetStatus{Phase: api.TargetReady, ObservedGeneration: 3}) || !prepared(target) {
		t.Errorf("%+v", st)
	}
	// One that went away has had its repository.
	if target.Status = nextTarget(target, errors.New("x")); target.Status.Phase != api.TargetFailed || !prepared(target) {
		t.Errorf("%+v", target.Status)
	}
}

// Copies keep to their limit, keep what became of them, and let go when told.
func TestCopies(t *testing.T) {
	kicked := make(chan string, 10)
	co := &core{o: Options{Go: func(f func()) { go f() }}, kick: func(k string) { kicked <- k }}
	c := newCopies(co, 1)
	begin := func(key string, f func(ctx context.Context) error) bool {
		return c.begin(t.Context(), key, "x", func(ctx context.Context, p func(backup.Progress)) (backup.Result, error) {
			p(backup.Progress{DoneBytes: 1, TotalBytes: 2})
			return backup.Result{TotalBytes: 2}, f(ctx)
		})
	}
	hold := make(chan struct{})
	if !begin("a", func(context.Context) error { <-hold; return nil }) || begin("a", nil) || begin("b", nil) || !c.full() {
		t.Fatal("the limit is one")
	}
	close(hold)
	if k := <-kicked; k != "a" {
		t.Errorf("kicked %q", k)
	}
	if s := c.look("a"); !s.ended || s.running || s.result.TotalBytes != 2 || s.progress.DoneBytes != 1 || s.err != nil || c.full() {
		t.Errorf("%+v", s)
	}
	if begin("a", nil) {
		t.Error("begun again before anybody dealt with its end")
	}
	c.take("a")
	if !begin("b", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) {
		t.Fatal("there is room")
	}
	if !c.cancel("b") {
		t.Error("it does not run")
	}
	<-kicked
	if s := c.look("b"); s != (copySeen{}) || c.cancel("b") {
		t.Errorf("it was cancelled, and is kept: %+v", s)
	}
	c.wait()
}
