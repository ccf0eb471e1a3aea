exec(open("/tmp/team/run/cov.py").read())
for kw in (dict(window=700),dict(lags=24),dict(lags=24,window=1000,inducing=60),dict(model="persistence"),dict(kernel="linear"),dict(kernel="linear",window=1000,model="hybrid")):
    go(f"CT h24 {kw}",CT,**iso|dict(lags=1,seasonal_lags="168",horizon=24,model="hybrid")|kw)
