package apply

// triggers are the kinds of requisites with which a step runs only because of another one.
var triggers = []string{"onchanges", "prereq", "onfail", "onfail_all"}
