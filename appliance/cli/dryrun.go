package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// dryRunFlag declares --dry-run.
func dryRunFlag(f *pflag.FlagSet) *bool {
	return f.Bool("dry-run", false, "check the request and show the result without changing anything")
}

// hasDryRun reports whether creating an object of the kind supports a dry run.
func (k *kind[T]) hasDryRun() bool {
	return !k.name().Info().NoDryRun && !k.can(api.CanPut)
}

// printTried prints an object as it would be, and a note that nothing was changed.
func (k *kind[T]) printTried(ctx context.Context, o T, would string) error {
	if k.made != nil && !k.secret {
		k.made(o)
	}
	if err := k.printOne(ctx, o); err != nil {
		return err
	}
	fmt.Fprintf(k.app.Err, "dry run: %s %s would be %s; nothing was changed\n", strings.ToLower(k.noun), api.MetaOf(&o).Name, would)
	return nil
}
