// Package container gives the virtual GPU of this machine to containers: it
// writes the CDI specification that Podman and other engines read, and is the OCI
// runtime in front of runc by which "docker run --gpus" works. DESIGN.md says why
// it is made so.
package container
