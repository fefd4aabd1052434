package supervisor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
)

// Systemd runs each program as a transient unit basalt-NAME.service with
// Restart=always. The unit's description has a hash of the argv, by which a change
// is detected. A transient unit does not exist any more after a reboot; the next
// Run creates it again.
type Systemd struct {
	// state returns the state of a unit.
	state func(ctx context.Context, unit string) (state, error)
	// command runs a program of systemd and returns its standard output; tests
	// replace it.
	command func(ctx context.Context, argv ...string) (string, error)
	scope   []string // --user in tests against a real systemd
}

// NewSystemd returns a Systemd for the system's systemd.
func NewSystemd() *Systemd { return &Systemd{state: systemManager().state, command: command} }

func command(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv[:min(2, len(argv))], " "), err, clip(bad.String(), maxOutput))
	}
	return out.String(), nil
}

// guestsUnit is the unit that shuts the guests down before the node shuts down.
const guestsUnit = "basalt-guests.service"

func unit(name string) string { return "basalt-" + name + ".service" }

func describe(name string, argv []string) string {
	sum := sha256.Sum256([]byte(strings.Join(argv, "\x00")))
	return "Basalt's " + name + " (" + hex.EncodeToString(sum[:8]) + ")"
}

// Run implements Daemons.
func (s *Systemd) Run(ctx context.Context, name string, argv []string) error {
	if err := check(name, argv); err != nil {
		return err
	}
	now, err := s.show(ctx, name)
	if err != nil {
		return err
	}
	if now.loaded {
		if now.up() && now.description == describe(name, argv) {
			return nil
		}
		if err := s.Stop(ctx, name); err != nil {
			return err
		}
	}
	_, err = s.run(ctx, "systemd-run", append([]string{
		"--quiet", "--unit=" + unit(name), "--description=" + describe(name, argv),
		"--property=Restart=always", "--property=RestartSec=1s",
		// No limit on restarts: a daemon that is never restarted would be worse.
		"--property=StartLimitIntervalSec=0",
		fmt.Sprintf("--property=LimitNOFILE=%d", maxFiles),
		fmt.Sprintf("--property=TimeoutStopSec=%ds", int(grace.Seconds())),
		// It is stopped after the node's guests have been shut down.
		"--property=Before=" + guestsUnit,
		// When memory is short, guests and workers are killed before what serves all of
		// them.
		"--property=OOMScoreAdjust=-700",
		// When CPU time is short, it has precedence over other programs of the node (100),
		// and system.slice over guests (installer/deb).
		"--property=CPUWeight=500",
		"--property=WorkingDirectory=/", "--setenv=LANG=C.UTF-8", "--setenv=TZ=UTC",
		"--", argv[0]}, escape(argv[1:])...)...)
	return err
}

// escape prevents systemd from expanding ${NAME} and $NAME in a command line.
// (Specifiers such as %n are expanded in unit files only.)
func escape(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "$", "$$")
	}
	return out
}

// Stop implements Daemons.
func (s *Systemd) Stop(ctx context.Context, name string) error {
	now, err := s.show(ctx, name)
	if err != nil || !now.loaded {
		return err
	}
	if _, err := s.run(ctx, "systemctl", "stop", unit(name)); err != nil {
		return err
	}
	// A failed transient unit keeps its name until it is reset.
	now, err = s.show(ctx, name)
	if err != nil || !now.loaded || now.active != "failed" {
		return err
	}
	_, err = s.run(ctx, "systemctl", "reset-failed", unit(name))
	return err
}

// Running implements Daemons.
func (s *Systemd) Running(ctx context.Context, name string) (bool, error) {
	now, err := s.show(ctx, name)
	// A unit that waits for its automatic restart (activating, auto-restart) does
	// not run.
	return now.loaded && (now.active == "active" || now.active == "reloading"), err
}

// LastOutput implements Daemons.
func (s *Systemd) LastOutput(ctx context.Context, name string) string {
	if checkName(name) != nil {
		return ""
	}
	out, err := s.run(ctx, "journalctl", "--no-pager", "--output=cat", "--lines=20", "--unit="+unit(name))
	if err != nil {
		return ""
	}
	return clip(out, maxOutput)
}

type state struct {
	loaded      bool
	active, sub string
	description string
}

// up reports whether systemd runs the unit or is about to restart it.
func (s state) up() bool {
	return s.active == "active" || s.active == "reloading" || s.active == "activating"
}

func (s *Systemd) show(ctx context.Context, name string) (state, error) {
	if err := checkName(name); err != nil {
		return state{}, err
	}
	return s.state(ctx, unit(name))
}

func (s *Systemd) run(ctx context.Context, program string, args ...string) (string, error) {
	return s.command(ctx, append(append([]string{program}, s.scope...), args...)...)
}

// clip returns the end of a text, at most limit bytes.
func clip(text string, limit int) string {
	text = strings.TrimSpace(text)
	return strings.ToValidUTF8(text[max(0, len(text)-limit):], "")
}
