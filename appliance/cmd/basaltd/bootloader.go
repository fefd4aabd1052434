package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
)

// bootLoaderCommand keeps GRUB current on the disks that the node starts from. It works
// without the running basaltd.
func bootLoaderCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "boot-loader", Short: "Show and update GRUB on the disks that this node starts from"}
	cmd.AddCommand(
		&cobra.Command{Use: "status", Args: cobra.NoArgs, Short: "Show the boot loaders of each disk",
			RunE: func(cmd *cobra.Command, _ []string) error {
				s, err := bootloader.System().Observe(cmd.Context())
				if err != nil {
					return fmt.Errorf("read the boot loaders: %w", err)
				}
				return showBootLoaders(cmd.OutOrStdout(), s)
			}},
		&cobra.Command{Use: "update", Args: cobra.NoArgs, Short: "Install GRUB on each disk where it is missing, damaged or old",
			RunE: func(cmd *cobra.Command, _ []string) error { return updateBootLoaders(cmd) }},
	)
	return cmd
}

// updateBootLoaders updates the boot loaders. It does nothing on other machines than
// installed nodes, since hooks of packages call it on every machine.
func updateBootLoaders(cmd *cobra.Command) error {
	h := bootloader.System()
	h.Out = cmd.OutOrStdout()
	changed, err := h.Update(cmd.Context())
	if errors.Is(err, bootloader.ErrNone) {
		return nil
	}
	if len(changed) > 0 {
		fmt.Fprintln(h.Out, "GRUB was installed on", strings.Join(changed, ", "))
	}
	if err != nil {
		return fmt.Errorf("update the boot loaders: %w", err)
	}
	return nil
}

// showBootLoaders prints a line for each disk, then one for each fault.
func showBootLoaders(out io.Writer, s bootloader.State) error {
	faults := bootloader.Faults(s)
	faulty := map[string]bool{}
	for _, f := range faults {
		faulty[f.Disk] = true
	}
	for _, d := range s.Disks {
		if faulty[d.Name] {
			continue
		}
		if _, err := fmt.Fprintln(out, d.Name, "is current"); err != nil {
			return err
		}
	}
	for _, f := range faults {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}
