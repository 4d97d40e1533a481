// Package compose holds the tests of docker-compose.yml and of the Dockerfile:
// they bring the composition up with a Docker engine and drive it over HTTP, as
// a user would. `make e2e-compose` runs them; they are behind the build tag
// compose, since `make test` needs no engine.
package compose
