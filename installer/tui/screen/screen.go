// Package screen runs the full-screen programs of a node.
package screen

import (
	"context"
	"errors"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// endLimit is the time to put the terminal in order when ctx has ended. One that
// takes nothing (a line that is held) would keep the program for ever.
const endLimit = 2 * time.Second

// Run a model on the whole screen until it ends itself, or ctx does (the error
// is nil then): the caller makes ctx end with SIGTERM. bubbletea's own handler
// of signals hears none: it wants to tell its loop, and waits for ever when that
// has ended with ctx.
//
// fps is how often bubbletea wakes up to see whether it has to draw, for as long
// as the program runs. Its own 60 times a second are felt on a slow machine.
func Run(ctx context.Context, m tea.Model, fps int) error {
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(endLimit, func() { os.Exit(0) })
	})
	defer stop()
	_, err := tea.NewProgram(m, tea.WithAltScreen(), tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(fps)).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}
