package client

import (
	"context"
	"io"
	"net/http"
)

// PutUpgradePackage sends a package's bytes to the node that receives the request.
func (a *API) PutUpgradePackage(ctx context.Context, sha256 string, r io.Reader, size int64) error {
	resp, err := a.send(ctx, request{method: http.MethodPut, path: []string{"upgrade-packages", sha256}, content: r, size: size})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
