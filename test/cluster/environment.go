package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
)

// environment is what a container's variables are in the cluster.
func (w *worker) environment(ctx context.Context, c container) (map[string]string, error) {
	env := map[string]string{}
	if links := w.pod.Spec.EnableServiceLinks; links == nil || *links {
		if err := w.serviceLinks(ctx, env); err != nil {
			return nil, err
		}
	}
	for _, from := range c.EnvFrom {
		if err := w.addAll(ctx, env, from); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		value, ok, err := w.value(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		if ok {
			env[v.Name] = expand(value, env)
		}
	}
	return env, nil
}

// serviceLinks adds the variables by which a pod is told of each Service of its
// namespace, asked for or not.
func (w *worker) serviceLinks(ctx context.Context, env map[string]string) error {
	services, err := w.node.client.List(ctx, "/api/v1/namespaces/"+w.pod.Metadata.Namespace+"/services")
	if err != nil {
		return err
	}
	for _, s := range services {
		ip := s.Text("spec", "clusterIP")
		ports, _ := s.At("spec", "ports").([]any)
		if ip == "None" || ip == "" || len(ports) == 0 {
			continue
		}
		name := strings.ToUpper(strings.ReplaceAll(s.Name(), "-", "_"))
		first := fmt.Sprint(ports[0].(map[string]any)["port"])
		env[name+"_SERVICE_HOST"], env[name+"_SERVICE_PORT"] = ip, first
		env[name+"_PORT"] = "tcp://" + net.JoinHostPort(ip, first)
		for _, p := range ports {
			o := Object(p.(map[string]any))
			number := fmt.Sprint(o["port"])
			env[name+"_SERVICE_PORT_"+strings.ToUpper(strings.ReplaceAll(o.Text("name"), "-", "_"))] = number
			env[name+"_PORT_"+number+"_TCP"] = "tcp://" + net.JoinHostPort(ip, number)
		}
	}
	return nil
}

func (w *worker) addAll(ctx context.Context, env map[string]string, from variables) error {
	for kind, ref := range map[string]*objectRef{"configmaps": from.ConfigMapRef, "secrets": from.SecretRef} {
		if ref == nil {
			continue
		}
		data, err := w.data(ctx, kind, ref.Name, ref.Optional)
		if err != nil {
			return err
		}
		for key, value := range data {
			env[from.Prefix+key] = value
		}
	}
	return nil
}

// value finds the value of a variable. It says false where there is none, and
// need not be.
func (w *worker) value(ctx context.Context, v variable) (string, bool, error) {
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		value, err := w.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		return w.key(ctx, "configmaps", *from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return w.key(ctx, "secrets", *from.SecretKeyRef)
	case from.ResourceFieldRef != nil:
		return "", false, fmt.Errorf("this node does not know resourceFieldRef %s", from.ResourceFieldRef.Resource)
	}
	return v.Value, true, nil
}

func (w *worker) field(path string) (string, error) {
	m := w.pod.Metadata
	value, ok := map[string]string{
		"metadata.name": m.Name, "metadata.namespace": m.Namespace, "metadata.uid": m.UID, "status.podIP": w.ip,
		"spec.nodeName": nodeName, "spec.serviceAccountName": w.pod.Spec.ServiceAccountName, "status.hostIP": "127.0.0.1",
	}[path]
	if !ok {
		return "", fmt.Errorf("this node does not know the field %s", path)
	}
	return value, nil
}

func (w *worker) key(ctx context.Context, kind string, ref keyRef) (string, bool, error) {
	data, err := w.data(ctx, kind, ref.Name, ref.Optional)
	if err != nil {
		return "", false, err
	}
	value, ok := data[ref.Key]
	if !ok && !ref.Optional {
		return "", false, fmt.Errorf("%s %s has no key %s", kind, ref.Name, ref.Key)
	}
	return value, ok, nil
}

// data returns what a ConfigMap or a Secret holds. An optional one that is not
// there holds nothing.
func (w *worker) data(ctx context.Context, kind, name string, optional bool) (map[string]string, error) {
	var object struct {
		Data, BinaryData map[string]string
	}
	path := "/api/v1/namespaces/" + w.pod.Metadata.Namespace + "/" + kind + "/" + name
	if err := w.node.client.Do(ctx, http.MethodGet, path, nil, &object); err != nil {
		if optional && NotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	data, encoded := object.Data, object.BinaryData
	if kind == "secrets" {
		data, encoded = nil, object.Data
	}
	all := maps.Clone(data)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range encoded {
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, fmt.Errorf("%s %s: key %s: %w", kind, name, key, err)
		}
		all[key] = string(text)
	}
	return all, nil
}
