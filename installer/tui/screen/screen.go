// Package screen runs the full-screen programs of a node.
package screen

import (
	"context"
	"errors"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// endLimit limits the time to restore the terminal after ctx has ended. A terminal that
// accepts no output (a line that is held) would block the program forever.
const endLimit = 2 * time.Second

// Run runs a model on the whole screen until it ends, or ctx does (the error is nil
// then): the caller cancels ctx on SIGTERM. bubbletea's own signal handler is not used:
// it sends a message to the event loop, and would block forever if that has ended with
// ctx.
//
// fps is how often per second bubbletea checks whether it has to draw, all the time
// while the program runs. Its default of 60 slows down a slow machine.
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
