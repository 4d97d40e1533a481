package cluster_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sluice-mesh/sluice/test/cluster"
)

// A pod that answers at port 80 would be found like this. hack/tool makes both
// programs.
func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, _ := os.MkdirTemp("", "cluster-")
	defer os.RemoveAll(dir)
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: dir, APIServer: ".tools/kube-apiserver", ControllerManager: ".tools/kube-controller-manager",
		Images: map[string]cluster.Image{"docker.io/library/web": {"": {Path: "bin/web"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	pod := cluster.Object{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "docker.io/library/web:1", "args": []any{"--addr=:80"}}}},
	}
	if err := c.Apply(ctx, "default", pod, false); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Node.PodAddress("default", "web")) // 127.x.y.z
}
