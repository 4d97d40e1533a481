package policy

import "slices"

// SetOptions are what a Set is made of.
type SetOptions struct {
	// Policies are at most one a domain.
	Policies []*Policy
	// Default is the domain of requests that name none. "" means that of the
	// only policy with rules for requests.
	Default string
}

// A Set is all policies that hold at one time. The zero value and a nil Set
// have none. It never changes and is safe for concurrent use: a reload makes
// another.
type Set struct {
	policies []*Policy
	byDomain map[string]*Policy
	standard *Policy
}

// NewSet makes a Set, or says all that is wrong. The faults' File is that of
// the policy at fault. With a Set there is a warning at most.
func NewSet(o SetOptions) (*Set, []Fault) {
	s := &Set{policies: slices.Clone(o.Policies), byDomain: make(map[string]*Policy)}
	var faults []Fault
	for _, p := range s.policies {
		if first := s.byDomain[p.Domain]; first != nil {
			faults = append(faults, Fault{
				File: p.File, Path: "domain",
				Found: quote(p.Domain) + ", which is " + fileName(first) + "'s as well as " + fileName(p) + "'s",
				Want:  "one file a domain", Do: "rename one, or put both files' rules into one",
			})
			continue
		}
		s.byDomain[p.Domain] = p
	}
	answering := s.answering()
	switch {
	case o.Default != "":
		s.standard = s.byDomain[o.Default]
		if s.standard == nil {
			faults = append(faults, Fault{Path: "--domain", Found: quote(o.Default), Want: "the domain of a policy file"})
		}
	case len(answering) == 1:
		s.standard = answering[0]
	}
	switch {
	case len(faults) > 0:
		return nil, faults
	case s.standard == nil && len(answering) > 1:
		return s, []Fault{undecided(answering)}
	}
	return s, nil
}

// undecided warns that requests which name no domain have none.
func undecided(answering []*Policy) Fault {
	first, second := answering[0], answering[1]
	return Fault{
		Path:  "--domain",
		Found: "nothing, and rules for requests in " + quote(first.Domain) + " (" + fileName(first) + ") and " + quote(second.Domain) + " (" + fileName(second) + ")",
		Want:  "the domain of requests that name none: without it they are allowed", Do: "or have every route name its domain in context_extensions", Warning: true,
	}
}

func fileName(p *Policy) string {
	if p.File == "" {
		return "an unnamed policy"
	}
	return p.File
}

// answering returns the policies that have rules for requests.
func (s *Set) answering() []*Policy {
	var all []*Policy
	for _, p := range s.policies {
		if p.answers {
			all = append(all, p)
		}
	}
	return all
}

// Domain returns the policy of a domain, nil for an unknown one.
func (s *Set) Domain(name string) *Policy {
	if s == nil {
		return nil
	}
	return s.byDomain[name]
}

// ForRequests returns the policy for a request whose route names domain. With
// "" it is that of SetOptions.Default, else the only one with rules for
// requests. It is nil if there is none.
func (s *Set) ForRequests(domain string) *Policy {
	if s == nil {
		return nil
	}
	if domain != "" {
		return s.byDomain[domain]
	}
	return s.standard
}

// Policies lists the policies in the order in which they were given. The slice
// is the caller's.
func (s *Set) Policies() []*Policy {
	if s == nil {
		return nil
	}
	return slices.Clone(s.policies)
}
