"""Who may do what: users, sessions, tokens and the links that set passwords."""
