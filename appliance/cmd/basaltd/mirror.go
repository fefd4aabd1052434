package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/appliance/node/mirror"
)

// mirrorCommand looks after disks that mirror each other. It works without the running basaltd.
func mirrorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mirror", Short: "Show and repair the disks of this node that mirror each other"}
	cmd.AddCommand(
		&cobra.Command{Use: "status", Args: cobra.NoArgs, Short: "Show the arrays and their disks",
			RunE: func(cmd *cobra.Command, _ []string) error {
				s, err := mirror.Host{}.State()
				if err != nil {
					return fmt.Errorf("read the state of the mirrored disks: %w", err)
				}
				return showMirror(cmd.OutOrStdout(), s)
			}},
		&cobra.Command{Use: "replace DISK", Args: cobra.ExactArgs(1), Short: "Erase a new disk and fill it in place of the one that is missing",
			RunE: func(cmd *cobra.Command, args []string) error {
				h := mirror.Host{Out: cmd.OutOrStdout()}
				if err := h.Replace(cmd.Context(), strings.TrimPrefix(args[0], "/dev/")); err != nil {
					return fmt.Errorf("replace a disk by %s: %w", args[0], err)
				}
				if err := updateBootLoaders(cmd); err != nil {
					return fmt.Errorf("%s is being filled, but it does not start the node yet; repeat basaltd boot-loader update: %w", args[0], err)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "the disk is being filled: basaltd mirror status")
				return err
			}},
	)
	return cmd
}

// showMirror prints a line for each array.
func showMirror(out io.Writer, s mirror.State) error {
	if len(s.Arrays) == 0 {
		_, err := fmt.Fprintln(out, mirror.ErrNone)
		return err
	}
	for _, a := range s.Arrays {
		var members []string
		for _, m := range a.Members {
			members = append(members, m.Name+" "+m.State)
		}
		doing := a.Action
		if a.Action != "idle" {
			doing += ", sectors " + a.Done
		}
		if _, err := fmt.Fprintf(out, "%s  %d of %d disks (%s)  %s\n", a.Name, a.Disks-a.Missing, a.Disks, strings.Join(members, ", "), doing); err != nil {
			return err
		}
	}
	return nil
}
