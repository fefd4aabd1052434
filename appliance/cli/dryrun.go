package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// dryRunFlag declares --dry-run.
func dryRunFlag(f *pflag.FlagSet) *bool {
	return f.Bool("dry-run", false, "check the request and show the result without changing anything")
}

// hasDryRun reports whether creating and changing an object of the kind support a dry run.
func (k *kind[T]) hasDryRun() bool {
	return !k.name().Info().NoDryRun && !k.can(api.CanPut)
}

// writing has the flags of a command that creates or changes an object.
type writing struct {
	waiting
	dry *bool
}

// writeFlags declares --dry-run, and --wait if objects of the kind have a state to wait for.
func (k *kind[T]) writeFlags(cmd *cobra.Command) *writing {
	w := &writing{dry: new(bool)}
	if k.ready != nil {
		addWaitFlags(cmd, &w.waiting)
	}
	if k.hasDryRun() {
		w.dry = dryRunFlag(cmd.Flags())
	}
	return w
}

// target returns where a command with these flags writes.
func (k *kind[T]) target(w writing) client.Collection[T] {
	if *w.dry {
		return k.objects().DryRun()
	}
	return k.objects()
}

// finish waits for an object that was written, and prints it. What was done to it is
// "created", "changed" or the like.
func (k *kind[T]) finish(ctx context.Context, o T, w writing, done string) error {
	if *w.dry {
		return k.printTried(ctx, o, fmt.Sprintf("%s %s would be %s", strings.ToLower(k.noun), api.MetaOf(&o).Name, done))
	}
	o, err := k.await(ctx, o, w.waiting)
	if err != nil {
		return err
	}
	return k.printOne(ctx, o)
}

// printTried prints an object as it would be, and a note that nothing was changed.
func (k *kind[T]) printTried(ctx context.Context, o T, would string) error {
	if err := k.printOne(ctx, o); err != nil {
		return err
	}
	fmt.Fprintf(k.app.Err, "dry run: %s; nothing was changed\n", would)
	return nil
}
