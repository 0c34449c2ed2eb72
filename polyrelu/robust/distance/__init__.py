"""dist(f, F) = inf_{c>0} sup_{|x|=1} |c f(x) - F(x)|, and the search for the largest difference on the sphere."""
